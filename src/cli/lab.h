/* `holdfast lab` and its commands, each of which has a file of its own. */
#ifndef HF_CLI_LAB_H
#define HF_CLI_LAB_H

int cli_lab(int argc, char **argv);
int cli_lab_race(int argc, char **argv);
int cli_lab_anomalies(int argc, char **argv);
int cli_lab_report(int argc, char **argv);

#endif
