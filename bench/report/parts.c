/*
 * parts.c: the assembler reads the files. WEFT_PAGE is their folder, WEFT_ECHARTS the file of the library that draws
 * charts, where there is one.
 */
#include "parts.h"

/* The fields of an entry are three words of the machine. All entries are in one statement, which keeps their order. */
_Static_assert(sizeof(struct report_part) == 24 && sizeof(void *) == 8, "an entry is three words of 8 bytes");

#define PART(name, file)                                                                                               \
    ".pushsection .rodata\n"                                                                                           \
    "71: .asciz \"" name "\"\n"                                                                                        \
    "72: .incbin \"" file "\"\n"                                                                                       \
    "73: .byte 0\n"                                                                                                    \
    ".popsection\n"                                                                                                    \
    ".quad 71b, 72b, 73b - 72b\n"
#define NO_PART(name)                                                                                                  \
    ".pushsection .rodata\n"                                                                                           \
    "71: .asciz \"" name "\"\n"                                                                                        \
    "72: .byte 0\n"                                                                                                    \
    ".popsection\n"                                                                                                    \
    ".quad 71b, 72b, 0\n"
#define OUR_PART(name) PART(name, WEFT_PAGE "/" name)
#ifdef WEFT_ECHARTS
#define CHARTS_PART PART("echarts.min.js", WEFT_ECHARTS)
#else
#define CHARTS_PART NO_PART("echarts.min.js")
#endif

/* A line for each part. */
/* clang-format off */
__asm__(".pushsection .data.rel.ro, \"aw\"\n"
        ".balign 8\n"
        ".globl report_parts\n"
        ".hidden report_parts\n"
        ".type report_parts, %object\n"
        "report_parts:\n"
        OUR_PART("report.css")
        CHARTS_PART
        OUR_PART("data.js")
        OUR_PART("table.js")
        OUR_PART("look.js")
        OUR_PART("hover.js")
        OUR_PART("charts.js")
        OUR_PART("page.js")
        ".quad 0, 0, 0\n"
        ".size report_parts, . - report_parts\n"
        ".popsection\n");
/* clang-format on */
