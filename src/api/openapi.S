/* docs/openapi.yaml as bytes of the program, so that a server serves the document it was built
 * with.  Assembly, since .incbin is the same for every flavour, with and without LTO. */
    .section .rodata
    .global openapi_yaml, openapi_yaml_end
openapi_yaml:
    .incbin "docs/openapi.yaml"
openapi_yaml_end:
    .section .note.GNU-stack, "", %progbits
