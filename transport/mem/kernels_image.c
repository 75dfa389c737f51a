#include "mem/kernels_image.h"

/* The assembler reads the file: no tool has to turn it into text first. */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl wf_kernels_first, wf_kernels_last\n"
        ".hidden wf_kernels_first, wf_kernels_last\n"
        "wf_kernels_first:\n"
        ".incbin \"" WF_KERNELS_FATBIN "\"\n"
        "wf_kernels_last:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char wf_kernels_first[], wf_kernels_last[];

const void *wf_kernels_image(void)
{
    return wf_kernels_first;
}

size_t wf_kernels_image_bytes(void)
{
    return (size_t)(wf_kernels_last - wf_kernels_first);
}
