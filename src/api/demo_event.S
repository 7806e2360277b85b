/* The demo's event as bytes of the program; see openapi.S. */
    .section .rodata
    .global demo_event_json, demo_event_json_end
demo_event_json:
    .incbin "share/holdfast/theatre.json"
demo_event_json_end:
    .section .note.GNU-stack, "", %progbits
