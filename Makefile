# Holdfast.  `make help` lists the targets.
#
# The build finds sources by their place, so a new file needs no line here:
#   src/*/*.c except src/cli  the core, linked into both programs and every test
#   src/lease/*/*.c           drivers of several files, in the same library
#   src/{lock,lease}/**.c     with what they need of src/{redis,etcd,db,net,base} also libholdfast, build/lib*
#   src/holdfastd.c           the server          src/cli/*.c     the command line tool
#   tests/*/test_*.c          one cmocka executable each: unit (pure), integration, fault
#   tests/support/*.c         linked into each of them
#   tests/sim/*.c             linked into tests/unit/test_turns, test_wait_turns and test_idle_turns in place of the ledger and
#                             the clock of waits; the tables and what checks them also into all others
#   tests/sim/cell_*.c        with linearize.c and sim_journal.c linked into tests/unit/test_cell_sim
#   tests/sim/mutate          plants bugs, with which tests are linked into build/asan/mutants/TEST/BUG
#   tests/conformance/test_*.c  one cmocka executable per lease driver, linked with the suite's other files
#                             there; contender.c is a program of its own
#   tests/journal/test_*.c    the same for the drivers of the cell's journal; appender.c is a program
#   tests/history/worker.c, reader.c, tests/clients/lock_driver.c  programs of their own, too
#   tests/differential/read_*.c  one program each, which prints what our reader makes of its input
#   tests/fuzz/fuzz_*.c       one libFuzzer target each, build/fuzz/tests/fuzz/NAME; in the other builds linked with
#                             replay.c there, a cmocka executable that runs the target on each file of its corpus
#   bench/*.c                 one program each, build/bench/NAME
#   web/**                    the pages, part of the server: scripts/embed-web writes a table of them
#   docs/examples/*.c         compiled and run by tests/library, against what `make install` leaves; the others by
#                             tests/cli and tests/clients
# One set of rules builds six flavours: build/ (the product), build/asan, build/tsan, build/coverage, with clang build/fuzz
# and, for the other architecture, build/other; `make FLAVOUR=asan` builds the second.  In build/asan, build/tsan and
# build/coverage the tests share the core as a library, so that it is linked once and not for each of 160 executables;
# the programs and the other flavours link it statically.

FLAVOUR ?= product
WERROR ?= 1
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
CC = $(if $(filter fuzz,$(FLAVOUR)),clang,gcc)
SECONDS = 60
# The plots of `holdfast lab report` and of the operator's page; part of the programs.
CHART_JS = /usr/share/javascript/chart.js/chart.min.js

ifeq ($(MAKELEVEL),0)
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
endif
MAKEFLAGS += --no-print-directory
say = $(if $(V),,@printf '%-5s %s\n' $(1) $@ &&)

# ---- flavours ------------------------------------------------------------------------------

B_product = build
B_asan = build/asan
B_tsan = build/tsan
B_coverage = build/coverage
B_fuzz = build/fuzz
B_other = build/other

# Drivers that libholdfast is built without: make WITHOUT="postgres redis".  Such a build is that of the
# library alone, in a folder of its own: build/without-postgres-redis.  The programs need all drivers.  Only the
# sources that mention HF_WITHOUT_ are compiled for it, all others are the same in every build of the library.
WITHOUT =
DRIVERS = etcd holdfast postgres redis sqlite zookeeper
LEFT_OUT = $(sort $(WITHOUT))
$(if $(filter-out $(DRIVERS),$(LEFT_OUT)),$(error WITHOUT takes $(DRIVERS), not $(filter-out $(DRIVERS),$(LEFT_OUT))))
none =
comma = ,
B_WHOLE = $(or $(B_$(FLAVOUR)),$(error FLAVOUR is product, asan, tsan, coverage, fuzz or other))
B = $(B_WHOLE)$(if $(LEFT_OUT),/without-$(subst $(none) $(none),-,$(LEFT_OUT)))

SHARED_FLAVOUR = $(filter asan tsan coverage,$(FLAVOUR))

FLAGS_product = -O2 -g -flto=auto -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
# The last two are not part of `undefined`: what a double out of an integer's range becomes differs between
# machines.
SANITIZERS = address,undefined,float-cast-overflow,float-divide-by-zero
FLAGS_asan = $(FLAGS_sanitizers) -fsanitize=$(SANITIZERS) -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_tsan = $(FLAGS_sanitizers) -fsanitize=thread
FLAGS_coverage = $(FLAGS_sanitizers) --coverage -fprofile-update=atomic
# -g1 is enough for the lines in a report; CFLAGS=-g adds the variables for a debugger.  With HF_CRASH_POINTS the
# server stops where base/crash.h says, if a test asks for it.
FLAGS_sanitizers = -O1 -g1 -fPIC -DHF_CRASH_POINTS
# Cross-compiled by scripts/other-machine, which says why these.
FLAGS_other = -O2 -g1 -fsanitize=$(SANITIZERS:address,%=%) -fno-sanitize-recover=all \
              -ftrivial-auto-var-init=pattern -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
FLAGS_fuzz = -O1 -gline-tables-only -fsanitize=fuzzer-no-link,$(SANITIZERS) \
             -fno-sanitize-recover=all -fno-omit-frame-pointer

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
           $(if $(WERROR),-Werror)
# clang's -Wconversion differs from gcc's, which has checked every file.
ifeq ($(FLAVOUR),fuzz)
WARNINGS = -Wall -Wextra $(if $(WERROR),-Werror)
endif
DIALECT = -std=c17 -D_GNU_SOURCE -Isrc -Iinclude -Itests

# pkg-config runs once, when a recipe first needs its answer: by then the packages are installed.
PROGRAM_NEEDS = libcurl jansson sqlite3 libcrypto libssl zlib hiredis libpq
LIBRARIES = $(if $(LEFT_OUT),$(LIB_NEEDS),$(PROGRAM_NEEDS))
ask = $(eval $(1) := $(shell pkg-config $(2)) $(3))$($(1))
LIB_CFLAGS = $(if $(LIBRARIES),$(call ask,LIB_CFLAGS,--cflags $(LIBRARIES)))
LIB_LIBS = $(call ask,LIB_LIBS,--libs $(LIBRARIES),$(LIBS_zookeeper) -lm)
TEST_LIBS = $(call ask,TEST_LIBS,--libs cmocka)

COMPILE = $(CC) $(DIALECT) $(FLAGS_$(FLAVOUR)) $(OPTIMISE) $(WARNINGS) -pthread $(LIB_CFLAGS) $(CFLAGS)
# A program is linked only with the libraries that it refers to.
LINK = $(CC) $(FLAGS_$(FLAVOUR)) -pthread -Wl,--as-needed $(RPATH) $(if $(SHARED_FLAVOUR),$(fast_linker)) $(LDFLAGS)
# gold, where it is installed, links a test in a fifth of the time.
fast_linker = $(eval fast_linker := $(if $(shell command -v ld.gold),-fuse-ld=gold))$(fast_linker)
# Where an executable finds the shared libraries of its build, also if the folder is moved.
RPATH = $(if $(SHARED_FLAVOUR),-Wl$(comma)-rpath$(comma)'$$ORIGIN:$$ORIGIN/..:$$ORIGIN/../..')

# ---- files ---------------------------------------------------------------------------------

objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
library_objects = $(foreach file,$(1),$(if $(filter $(file),$(DRIVER_DEPENDENT)),$(B),$(B_WHOLE))/obj/library/$(file:.c=.o))
programs = $(patsubst %.c,$(B)/%,$(1))

CORE = $(call objects,$(filter-out src/cli/%,$(wildcard src/*/*.c src/lease/*/*.c))) $(B)/obj/src/api/openapi.o $(B)/obj/src/api/demo_event.o \
       $(B)/obj/src/lab/assets.o $(B)/obj/web/bytes.o $(B)/obj/web/files.o
# Prerequisites of what is linked with the core, or with tests/support as well.  A shared library that has changed
# is no reason to link again.
WITH_CORE = $(if $(SHARED_FLAVOUR),| $(B)/libcore.so,$(B)/core.a)
WITH_SUPPORT = $(if $(SHARED_FLAVOUR),| $(B)/libsupport.so $(B)/libcore.so,$(SUPPORT) $(B)/core.a)
linked = $(filter %.o,$^) $(filter %.a,$^) $(filter %.so,$|)
# The folders are here too: they change when a file comes or goes.
WEB = $(shell find web)
SERVER = $(call objects,$(wildcard src/holdfastd.c))
CLI = $(call objects,$(wildcard src/cli/*.c))
LEAKS = $(call objects,tests/support/leaks.c)
# The paper ledger of tests/support has the tables of the simulated one.
SUPPORT = $(filter-out $(LEAKS),$(call objects,$(wildcard tests/support/*.c tests/sim/tables*.c tests/sim/check*.c)))
CELL_SIM_SOURCES = $(wildcard tests/sim/cell_*.c tests/sim/linearize.c tests/sim/sim_journal.c)
CELL_SIM = $(call objects,$(CELL_SIM_SOURCES))
SIM = $(call objects,$(filter-out $(CELL_SIM_SOURCES),$(wildcard tests/sim/*.c)))
MUTANTS = $(addprefix $(B)/mutants/,$(shell tests/sim/mutate --list))
TEST_SOURCES = $(wildcard tests/*/test_*.c)
TESTS = $(call programs,$(TEST_SOURCES))
CONTENDER = $(call programs,$(wildcard tests/conformance/contender.c tests/history/worker.c \
                tests/history/reader.c tests/journal/appender.c tests/clients/lock_driver.c))
READERS = $(call programs,$(wildcard tests/differential/read_*.c))
CONFORMANCE = $(call objects,$(filter-out $(TEST_SOURCES) tests/conformance/contender.c,\
                $(wildcard tests/conformance/*.c)))
JOURNAL = $(call objects,$(filter-out $(TEST_SOURCES) tests/journal/appender.c,\
                $(wildcard tests/journal/*.c)) tests/sim/sim_journal.c)
FUZZ_SOURCES = $(wildcard tests/fuzz/fuzz_*.c)
FUZZERS = $(call programs,$(FUZZ_SOURCES))
REPLAY = $(call objects,tests/fuzz/replay.c)
BENCH_SOURCES = $(wildcard bench/*.c)
BENCHES = $(call programs,$(BENCH_SOURCES))
# The bench's peers on libmicrohttpd.  Only `make bench` builds them, since nothing else needs that library.
MHD_PEER_SOURCES = bench/bare.c bench/peer.c
MHD_PEERS = $(call programs,$(MHD_PEER_SOURCES))
# libholdfast: src/lock and src/lease whole, of src/redis, src/etcd, src/db, src/net and src/base only what they refer to;
# without the files of drivers that are left out, and the libraries that only those need.
FILES_postgres = src/lease/sql/postgres.c src/db/postgres%.c
FILES_redis = src/lease/redis/%.c src/lease/redlock/%.c src/redis/%.c
FILES_etcd = src/lease/etcd/%.c src/etcd/%.c
FILES_holdfast = src/lease/holdfast/%.c
FILES_etcd-holdfast = src/net/%.c
FILES_zookeeper = src/lease/zookeeper/%.c
FILES_sqlite = src/lease/sql/sqlite.c src/db/sqlite%.c
FILES_postgres-sqlite = src/lease/sql/%.c src/db/%.c
NEEDS_postgres = libpq
NEEDS_redis = hiredis libcrypto libssl
NEEDS_etcd = libcurl jansson
NEEDS_holdfast = libcurl jansson
# Debian has no pkg-config file for it.
LIBS_zookeeper = -lzookeeper_mt
NEEDS_sqlite = sqlite3
LEFT_OUT_FILES = $(foreach driver,$(LEFT_OUT),$(FILES_$(driver))) \
    $(if $(filter-out $(LEFT_OUT),postgres sqlite),,$(FILES_postgres-sqlite)) \
    $(if $(filter-out $(LEFT_OUT),etcd holdfast),,$(FILES_etcd-holdfast))
library_files = $(call library_objects,$(filter-out $(LEFT_OUT_FILES),$(wildcard $(1))))
LIB_WHOLE = $(call library_files,src/lock/*.c src/lease/*.c src/lease/*/*.c)
LIB_REST = $(call library_files,src/base/*.c src/db/*.c src/redis/*.c src/etcd/*.c src/net/*.c)
LIB_NEEDS = $(foreach driver,$(filter-out $(LEFT_OUT),$(DRIVERS)),$(NEEDS_$(driver)))
DRIVER_DEPENDENT := $(if $(LEFT_OUT),$(shell grep -rl HF_WITHOUT_ src include))
$(if $(filter %.h,$(DRIVER_DEPENDENT)),$(error HF_WITHOUT_ is for sources, not for $(filter %.h,$(DRIVER_DEPENDENT))))
LIB_DEFINES = $(foreach driver,$(LEFT_OUT),-DHF_WITHOUT_$(shell echo $(driver) | tr a-z A-Z))
SONAME = libholdfast.so.0
VERSION = $(shell sed -n 's/.*HF_VERSION_TEXT "\(.*\)"/\1/p' include/holdfast.h)
LIBRARY = $(B)/libholdfast.a $(B)/$(SONAME) $(B)/libholdfast.so $(B)/holdfast.pc
PROGRAMS = $(if $(LEFT_OUT),,$(B)/holdfastd $(B)/holdfast)
# Of a build that leaves drivers out the machine has what it needs, or the compiler says what is missing.
BUILD_PACKAGES = $(if $(LEFT_OUT),,build/packages/build)
# What operators use as it is.  fence.* belongs to the library; systemd's unit and the completion have places of their own.
SHARED = $(filter-out %/fence.sql %/fence.lua %/Containerfile %/holdfastd.service %/holdfast.bash,$(wildcard share/holdfast/*))
C_FILES = $(wildcard src/*.[ch] src/*/*.[ch] src/lease/*/*.[ch] include/*.h tests/*/*.[ch] bench/*.[ch] \
          docs/examples/*.c)

# Coordinators of three servers, of which some are lost.
ENSEMBLE_TESTS = $(patsubst %.c,build/%,$(wildcard tests/integration/test_*_ensemble.c))
# Larger crowds of waiters, and every claim about a moment, which a busy machine skips without HF_TIMES=1.
CROWD_TESTS = $(filter-out $(ENSEMBLE_TESTS),$(patsubst %.c,build/%,$(sort $(wildcard tests/conformance/test_*.c) \
              $(shell grep -lw 'TIMELY_CLAIM\|timely\|HF_TIMES' tests/*/test_*.c))))
# Every call to the disk fails in turn.
DISK_TESTS = build/tests/fault/test_io build/tests/fault/test_lease_io

# ---- targets -------------------------------------------------------------------------------

.PHONY: all programs library tests unit-tests benches mhd-peers fuzzers run cluster cell check test tsan bare
.PHONY: coverage fuzz bench soak other-machine deb clients images lint rooms install install-library clean help FORCE
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:

all: programs library
programs: $(PROGRAMS)
library: $(LIBRARY)
tests: $(TESTS) $(CONTENDER) $(READERS) $(FUZZERS) $(if $(filter %/test_mutants,$(TESTS)),$(MUTANTS))
unit-tests: $(filter $(B)/tests/unit/%,$(TESTS)) $(FUZZERS)
benches: $(filter-out $(MHD_PEERS),$(BENCHES))
mhd-peers: $(MHD_PEERS)
fuzzers: $(FUZZERS)

run: build/holdfastd
	@exec build/holdfastd --data var --demo

cluster: all build/packages/cluster
	@exec scripts/cluster

# JOURNAL=postgres: on PostgreSQL instead of etcd.
cell: all build/packages/cell
	@JOURNAL=$(or $(JOURNAL),etcd) exec scripts/cell

# Runs the C tests of tests/unit on the sanitizers' build, without the leak check at the end of each.
# T=NAME runs the C test of that name, in whatever folder, and shows all of its output; three names are in two folders.
check: build/packages/test
ifdef T
	@$(MAKE) FLAVOUR=asan $(or $(patsubst %.c,build/asan/%,$(wildcard tests/*/$(T).c)),$(error no tests/*/$(T).c))
	@for test in $(patsubst %.c,build/asan/%,$(wildcard tests/*/$(T).c)); do ASAN_OPTIONS=detect_leaks=0 $$test || exit; done
else
	@$(MAKE) FLAVOUR=asan unit-tests
	@tests/run --unit build/asan
endif

# Everything runs on the build with the address and undefined-behaviour sanitizers; `make tsan` is the same with the
# thread sanitizer.
test: TESTED = asan
tsan: TESTED = tsan
coverage: TESTED = coverage
test tsan coverage: rooms build/packages/test tests/node_modules/.ready
	@$(MAKE) FLAVOUR=$(TESTED) programs tests build/$(TESTED)/bench/streams
	@tests/run build/$(TESTED)
	$(if $(filter coverage,$(TESTED)),@scripts/coverage build/coverage)

# Runs each target for SECONDS seconds; inputs of findings are left in build/fuzz/findings.
fuzz: build/packages/fuzz
	@$(MAKE) FLAVOUR=fuzz fuzzers
	@tests/fuzz/run --seconds $(SECONDS) --grow build/fuzz

bench: all benches mhd-peers build/packages/bench
	@bench/run

# Tries `make run` and `make test` on a machine that has only git and make: a new Debian in a chroot.
bare:
	@scripts/bare-machine

# The programs and tests of ARM on x86-64 and the other way round, with qemu.
other-machine: build/packages/other tests/node_modules/.ready
	+@scripts/other-machine

# Suites of the API that also run over HTTPS.
TLS_SUITES = areas bookings headers holds idempotency lists lock_streams locks sessions stream
soak: all benches build/packages/soak build/packages/fuzz build/packages/other tests/node_modules/.ready
	@$(MAKE) FLAVOUR=asan programs tests build/asan/bench/streams
	@HF_BACKENDS=all tests/run --stops 1 build/asan
	@HF_SOAK=1 HOLDFAST_TEST_BACKEND=postgres tests/run --node tests/server/migrate.test.mjs build/asan
	@$(MAKE) $(ENSEMBLE_TESTS)
	@for test in $(ENSEMBLE_TESTS); do HF_TIMES=1 $$test || exit; done
	@$(MAKE) $(CROWD_TESTS)
	@for test in $(CROWD_TESTS); do HF_CROWD=1000 HF_TIMES=1 $$test || exit; done
	@$(MAKE) $(DISK_TESTS)
	@for test in $(DISK_TESTS); do HF_FAULT_ALL=1 $$test || exit; done
	@$(MAKE) build/tests/unit/test_cell_sim build/tests/unit/test_cell_model build/tests/integration/test_mutants build/tests/clients/lock_driver
	@HF_OUTSIDE=1 build/tests/integration/test_mutants
	@$(MAKE) build/tests/unit/test_retention
	@HF_HOLDS=2000000 build/tests/unit/test_retention
	@HF_SEED=501 HF_SEEDS=$${HF_SEEDS:-200000} build/tests/unit/test_cell_sim
	@HF_STEPS=10000 build/tests/unit/test_cell_model
	@HF_SEED=41 HF_WORLDS=1000 build/asan/tests/unit/test_wait_turns
	@HF_SOAK=1 HF_KILLS=50 HF_CHECKOUTS=5000 HF_SALE=2000 HF_CRASH_ALL=1 HF_SOAK_S=300 HF_STREAMS=50000 HF_LOG_MB=2000 HF_RESTARTS=3 HF_MAP_S=300 HF_HISTORY_S=1200 TEST_TIME_FACTOR=10 tests/run --programs build --node 'tests/fault/*.test.mjs' --node 'tests/history/*.test.mjs' --node 'tests/attack/*.test.mjs' --node tests/web/seats_large.test.mjs --node tests/web/purchase.test.mjs --node tests/cli/coordinators.test.mjs --node tests/cli/loss.test.mjs --node tests/cli/outage.test.mjs --node tests/cli/run.test.mjs --node tests/cli/sets.test.mjs --node tests/cli/input.test.mjs --node tests/sandbox/promises.test.mjs --node tests/server/checkout.test.mjs --node tests/server/input.test.mjs --node tests/server/lock_waits.test.mjs --node tests/clients/conformance.test.mjs --node tests/server/snapshots.test.mjs --node tests/server/stream.test.mjs --node tests/lab/locks.test.mjs --node tests/lab/race.test.mjs --node tests/lab/report.test.mjs build
	@HF_SOAK=1 HOLDFAST_TEST_BACKEND=cluster TEST_TIME_FACTOR=10 tests/run --programs build --node tests/race/seats.test.mjs --node tests/race/places.test.mjs build
	@HOLDFAST_TEST_TLS=1 TEST_TIME_FACTOR=10 tests/run --programs build $(patsubst %,--node tests/server/%.test.mjs,$(TLS_SUITES)) build
	@$(MAKE) fuzz SECONDS=$${HF_FUZZ_S:-450}
	@$(MAKE) other-machine
	@scripts/try-packages

# Packages for Debian, in build/deb.
deb: build/packages/deb
	@scripts/build-deb

# Packages of the clients, in build/clients, each installed into an empty project and tried there.
clients: build/holdfastd build/packages/clients
	@HF_CLIENTS=$(CURDIR)/build/clients tests/run --node tests/clients/packages.test.mjs build
	@ls build/clients/*

# The pictures of docs/images, taken anew; scripts/take-images.mjs NAME takes one of them.
images: programs tests/node_modules/.ready
	@scripts/take-images.mjs

# Checks that includes point down, and that only src/base calls the system for time, waiting and randomness.
rooms:
	@scripts/check-rooms

lint: build/packages/lint
	clang-format --dry-run -Werror $(C_FILES)
	@printf '%s\n' $(filter %.c,$(C_FILES)) | \
		xargs -P $$(nproc) -I {} clang-tidy --quiet {} -- $(DIALECT) $(LIB_CFLAGS)
	scripts/check-rooms
	scripts/check-order
	scripts/check-comments
	cd clients/python && mypy --cache-dir ../../build/mypy

install: all install-library
	install -d $(DESTDIR)$(PREFIX)/bin
	$(if $(PROGRAMS),install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin)
	$(call install_pages,$(filter-out %.3,$(wildcard docs/man/*.[1-8])))
	$(if $(PROGRAMS),$(install_operators_files))

install-library: library
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 644 include/holdfast.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(B)/libholdfast.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(B)/$(SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libholdfast.so
	install -m 644 $(B)/holdfast.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	install -d $(DESTDIR)$(PREFIX)/share/holdfast
	install -m 644 share/holdfast/fence.* $(DESTDIR)$(PREFIX)/share/holdfast
	$(call install_pages,$(wildcard docs/man/*.3))

define install_operators_files
install -d $(DESTDIR)$(PREFIX)/share/holdfast $(DESTDIR)$(PREFIX)/lib/systemd/system \
	$(DESTDIR)$(PREFIX)/share/bash-completion/completions
install -m 644 share/holdfast/holdfast.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast
install -m 644 $(SHARED) $(DESTDIR)$(PREFIX)/share/holdfast
sed 's|/usr/bin/|$(PREFIX)/bin/|' share/holdfast/holdfastd.service \
	>$(DESTDIR)$(PREFIX)/lib/systemd/system/holdfastd.service
endef

define install_pages
@for page in $(1); do \
	section=$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}; \
	install -d $$section && install -m 644 $$page $$section; \
done
endef

clean:
	rm -rf build

help:
	@echo 'make              build/holdfastd, build/holdfast and build/libholdfast.{a,so}'
	@echo 'make run          the server with a demo event, on http://127.0.0.1:8080, data in var/'
	@echo 'make cluster      three servers, PostgreSQL, Redis and HAProxy there, data in var/cluster/'
	@echo 'make cell         a lock service of three servers on a three-node etcd, or with JOURNAL=postgres; data in var/cell/'
	@echo 'make check        the C unit tests, in seconds; make check T=test_decide runs one'
	@echo 'make test         every test, on a build with the address and undefined-behaviour sanitizers'
	@echo 'make tsan         the same with the thread sanitizer'
	@echo 'make coverage     the same without a sanitizer, and how many lines of src the tests have run'
	@echo 'make bare         make run and make test on a bare Debian, in a chroot (needs root and debootstrap)'
	@echo 'make other-machine  the C tests that need no server, and the API, of x86-64 on ARM or of ARM on x86-64, with qemu'
	@echo 'make fuzz         every parser on generated input, SECONDS=$(SECONDS) each'
	@echo 'make bench        throughput and latency beside Redis, PostgreSQL and a bare epoll loop'
	@echo 'make soak         the fault tests for a long time: 50 kills, five minutes of three servers, 50,000 streams;'
	@echo '                  all attacks at once for ten minutes; an hour of fuzzing; the other architecture;'
	@echo '                  then the packages on a new Debian with systemd, in a container (needs root)'
	@echo 'make lint         the rooms (scripts/rooms.txt), the order of evaluation, clang-format, clang-tidy and mypy'
	@echo 'make deb          packages for Debian: holdfastd, holdfast, libholdfast0, libholdfast-dev, in build/deb'
	@echo 'make clients      packages of the clients for npm and pip, tried in empty projects, in build/clients'
	@echo 'make images       the pictures of the pages and of the lab in docs/images, taken anew'
	@echo 'make install      into PREFIX=$(PREFIX), below DESTDIR=; install-library: libholdfast alone'
	@echo 'make clean        remove build/'
	@echo
	@echo 'WITHOUT="postgres redis ..." (etcd holdfast postgres redis sqlite zookeeper) builds libholdfast without these drivers, into build/without-...'
	@echo 'WERROR= lets warnings pass; V=1 shows commands; FLAVOUR=asan|tsan|fuzz builds into build/asan...'

# ---- rules ---------------------------------------------------------------------------------

$(B)/core.a $(B)/server.a:
	@rm -f $@
	$(call say,AR) $(AR) rcs $(if $(SHARED_FLAVOUR),--thin) $@ $^
$(B)/core.a: $(CORE)
$(B)/server.a: $(filter-out $(B)/obj/src/lab/%,$(CORE))

$(B)/libcore.so: $(CORE)
	$(call say,LINK) $(LINK) -shared -Wl,-soname,$(@F) $^ $(LIB_LIBS) -o $@

$(B)/libsupport.so: $(SUPPORT) $(WITH_CORE)
	$(call say,LINK) $(LINK) -shared -Wl,-soname,$(@F) $(linked) $(TEST_LIBS) $(LIB_LIBS) -o $@

# Suites start the programs thousands of times: at fixed addresses they start in three quarters of the time, since 300,000
# pointers of the sanitizers need not be relocated.
$(if $(filter asan,$(FLAVOUR)),$(PROGRAMS)): LDFLAGS += -no-pie

# The server does without the lab, and is built without waiting for it.
$(B)/holdfastd: $(SERVER) $(B)/server.a
	$(call say,LINK) $(LINK) $(linked) $(LIB_LIBS) -o $@

$(B)/holdfast: $(CLI) $(B)/core.a
	$(call say,LINK) $(LINK) $(linked) $(LIB_LIBS) -o $@

# One object in which everything but include/holdfast.h is local: a program's own `buf_put` and ours
# do not meet.
$(B)/libholdfast.a: $(B)/obj/library/whole.o
	@rm -f $@
	$(call say,AR) $(AR) rcs $@ $^

$(B)/obj/library/whole.o: $(LIB_WHOLE) $(B)/obj/library/rest.a
	$(call say,LD) ld -r $^ -o $@ && objcopy --localize-hidden $@

$(B)/obj/library/rest.a: $(LIB_REST)
	@rm -f $@
	$(call say,AR) $(AR) rcs $@ $^

$(B)/$(SONAME): $(LIB_WHOLE) $(B)/obj/library/rest.a
	$(call say,LINK) $(LINK) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs,-z,relro,-z,now $^ \
		-Wl,--as-needed $(if $(LIB_NEEDS),$(call ask,LIB_NEEDS_LIBS,--libs $(LIB_NEEDS))) \
		$(if $(filter zookeeper,$(LEFT_OUT)),,$(LIBS_zookeeper)) -o $@

$(B)/libholdfast.so: $(B)/$(SONAME)
	@ln -sf $(SONAME) $@

# Made anew each time: PREFIX may be another.  The libraries that libholdfast.a needs are named one by one and not by
# Requires.private, which would add their folders of headers to every program's, and for a static link of libpq and libcurl name what
# is not in their packages (libpgcommon and libpgport, Kerberos, LDAP, nghttp2...).  A program with libholdfast.a takes those two as
# shared libraries.  A build WITHOUT="etcd holdfast postgres zookeeper" can be linked with -static as it is.
# Each before those that it needs.
LIB_STATIC = curl jansson pq hiredis sqlite3 ssl crypto
$(B)/holdfast.pc: FORCE Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' \
		'libdir=$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))' \
		'includedir=$${prefix}/include' '' \
		'Name: holdfast' 'Description: Lease locks with fencing tokens over many back ends' \
		'Version: $(VERSION)' 'Libs: -L$${libdir} -lholdfast' \
		'Libs.private: $(strip $(addprefix -l,$(filter $(patsubst lib%,%,$(LIB_NEEDS)),$(LIB_STATIC))) $(if $(filter zookeeper,$(LEFT_OUT)),,$(LIBS_zookeeper))) -lm -pthread' \
		'Cflags: -I$${includedir}' >$@
FORCE:

# The simulation defines what src/ledger (but batch_memory.c), engine/follow.c and base/wait.c define.  Its
# objects come before core.a, so the linker takes nothing from those; most of tests/support would need them.
# These tests and those of the cell's simulation are linked statically in every flavour: had the simulation only a
# part of what a file defines, the linker would say so.
SIM_TESTS = $(filter %/test_turns %/test_idle_turns %/test_wait_turns,$(TESTS))
SIM_OF_TURNS = $(SIM) $(call objects,tests/support/fixtures.c tests/support/process.c)
$(SIM_TESTS): $(B)/%: $(B)/obj/%.o $(SIM_OF_TURNS) $(B)/core.a
CELL_SIM_TESTS = $(filter %/test_cell_sim %/test_linearize,$(TESTS))
$(CELL_SIM_TESTS): $(B)/%: $(B)/obj/%.o $(CELL_SIM) $(B)/core.a
$(filter-out $(SIM_TESTS) $(CELL_SIM_TESTS),$(TESTS)): $(B)/%: $(B)/obj/%.o $(WITH_SUPPORT)
$(TESTS):
	@mkdir -p $(@D)
	$(call say,LINK) $(LINK) $(linked) $(TEST_LIBS) $(LIB_LIBS) -o $@

# In the executable itself, since the sanitizer asks the first library that has the function, which is its own.
$(if $(filter asan,$(FLAVOUR)),$(PROGRAMS)): $(LEAKS)
$(TESTS) $(FUZZERS) $(MUTANTS) $(CONTENDER) $(READERS): $(LEAKS)

$(filter $(B)/tests/conformance/%,$(TESTS)): $(CONFORMANCE) | $(CONTENDER)
$(filter $(B)/tests/journal/%,$(TESTS)): $(JOURNAL) | $(CONTENDER)
$(filter %/test_holdfast %/test_lease_holdfast_locks,$(TESTS)): | $(B)/holdfastd

# A simulation with a planted bug, as mutants/TEST/BUG: its object takes the place of one of core.a.
$(filter %/test_mutants,$(TESTS)): | $(MUTANTS)
$(filter $(B)/mutants/test_cell_sim/%,$(MUTANTS)): $(B)/obj/tests/unit/test_cell_sim.o $(CELL_SIM)
$(filter $(B)/mutants/test_wait_turns/%,$(MUTANTS)): $(B)/obj/tests/unit/test_wait_turns.o $(SIM_OF_TURNS)
$(filter $(B)/mutants/test_decide_wait/%,$(MUTANTS)): $(B)/obj/tests/unit/test_decide_wait.o $(WITH_SUPPORT)
$(filter-out $(B)/mutants/test_decide_wait/%,$(MUTANTS)): $(B)/core.a
$(MUTANTS): $(B)/mutants/%: $(B)/obj/mutants/%.o
	@mkdir -p $(@D)
	$(call say,LINK) $(LINK) $(linked) $(TEST_LIBS) $(LIB_LIBS) -o $@
$(B)/obj/mutants/%.c: tests/sim/mutate $(wildcard src/cell/*.c src/lease/holdfast/*.c src/rules/*.c src/view/*.c src/engine/command.c)
	@mkdir -p $(@D)
	@tests/sim/mutate $(*F) $@
$(B)/obj/mutants/%.o: $(B)/obj/mutants/%.c Makefile
	$(call say,CC) $(COMPILE) -MMD -MP -c $< -o $@

$(CONTENDER): $(B)/%: $(B)/obj/%.o $(WITH_CORE)
	@mkdir -p $(@D)
	$(call say,LINK) $(LINK) $(linked) $(LIB_LIBS) -o $@

$(READERS): $(B)/%: $(B)/obj/%.o $(call objects,tests/support/transcript.c) $(WITH_CORE)
	@mkdir -p $(@D)
	$(call say,LINK) $(LINK) $(linked) $(LIB_LIBS) -o $@

$(BENCHES): $(B)/%: $(B)/obj/%.o $(WITH_CORE)
	@mkdir -p $(@D)
	$(call say,LINK) $(LINK) $(linked) $(LIB_LIBS) $(PEER_LIBS) -o $@
$(MHD_PEERS): PEER_LIBS = $(call ask,MHD_LIBS,--libs libmicrohttpd)
$(call objects,$(MHD_PEER_SOURCES)): | build/packages/bench

$(filter %/fuzz_http_parse,$(FUZZERS)): $(call objects,tests/support/transcript.c)
$(filter %/fuzz_http_conn %/fuzz_api,$(FUZZERS)): $(call objects,tests/support/site.c)
$(FUZZERS): $(B)/%: $(B)/obj/%.o $(if $(filter fuzz,$(FLAVOUR)),,$(REPLAY)) $(WITH_CORE)
	@mkdir -p $(@D)
	$(call say,LINK) $(LINK) $(linked) $(if $(filter fuzz,$(FLAVOUR)),-fsanitize=fuzzer,$(TEST_LIBS)) $(LIB_LIBS) -o $@

# Compiling a test takes more time than optimising it saves, but for the simulations.
$(if $(SHARED_FLAVOUR),$(filter-out $(SIM) $(CELL_SIM),$(call objects,$(wildcard tests/*/*.c)))): OPTIMISE = -Og
$(B)/obj/%.o: %.c Makefile | build/packages/build
	@mkdir -p $(@D)
	$(call say,CC) $(COMPILE) -MMD -MP -c $< -o $@

# Without -flto: what is localised must be machine code by then.
define compile_for_library
	@mkdir -p $(@D)
	$(call say,CC) $(COMPILE) $(LIB_DEFINES) -fno-lto -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@
endef
$(B)/obj/library/%.o: %.c Makefile | $(BUILD_PACKAGES)
	$(compile_for_library)
ifneq ($(LEFT_OUT),)
$(B_WHOLE)/obj/library/%.o: LIB_DEFINES =
$(B_WHOLE)/obj/library/%.o: %.c Makefile
	$(compile_for_library)
endif

$(B)/obj/src/api/openapi.o: src/api/openapi.S docs/openapi.yaml Makefile | build/packages/build
	@mkdir -p $(@D)
	$(call say,AS) $(CC) -c $< -o $@

$(B)/obj/src/api/demo_event.o: src/api/demo_event.S share/holdfast/theatre.json Makefile | build/packages/build
	@mkdir -p $(@D)
	$(call say,AS) $(CC) -c $< -o $@

$(B)/obj/src/lab/assets.o: src/lab/assets.S src/lab/report.html src/lab/report.css src/lab/report.js \
    share/holdfast/fence.sql $(CHART_JS) Makefile | build/packages/build
	@mkdir -p $(@D)
	$(call say,AS) $(CC) -DCHART_JS='"$(CHART_JS)"' -c $< -o $@

$(B)/obj/web/files.c $(B)/obj/web/files.S &: scripts/embed-web $(WEB) $(CHART_JS) Makefile
	$(call say,WEB) scripts/embed-web $(@D) $(CHART_JS)

$(B)/obj/web/files.o: $(B)/obj/web/files.c src/http/file.h Makefile | build/packages/build
	$(call say,CC) $(COMPILE) -c $< -o $@

$(B)/obj/web/bytes.o: $(B)/obj/web/files.S Makefile | build/packages/build
	$(call say,AS) $(CC) -c $< -o $@

# The build's packages install it; where it has another path, use `make CHART_JS=FILE`.
$(CHART_JS): | build/packages/build
	@test -e $@ || { echo '$@: missing; where is chart.min.js (3.x)? make CHART_JS=FILE' >&2; false; }

$(call objects,$(TEST_SOURCES)) $(SUPPORT) $(SIM) $(CELL_SIM) $(CONFORMANCE) $(JOURNAL) $(REPLAY) $(LEAKS): | build/packages/test

# Packages are checked once; after `make clean`, they are checked again.
build/packages/%: scripts/install-packages
	@scripts/install-packages $*
	@mkdir -p $(@D) && touch $@
build/packages/test build/packages/cluster build/packages/cell: build/packages/build
build/packages/bench build/packages/lint build/packages/fuzz build/packages/soak build/packages/other: build/packages/test
build/packages/deb build/packages/clients: build/packages/build

# The npm packages of the black-box suites, exactly as locked.
tests/node_modules/.ready: tests/package.json tests/package-lock.json | build/packages/test
	$(call say,NPM) npm --prefix tests ci --no-progress --loglevel=error
	@touch $@

-include $(shell find $(B)/obj $(if $(LEFT_OUT),$(B_WHOLE)/obj/library) -name '*.d' 2>/dev/null)
