/*
 * kernels_image.h: the fatbin of kernels.cu, where this build has one (CMakeLists.txt chooses which source defines it).
 */
#ifndef WF_MEM_KERNELS_IMAGE_H
#define WF_MEM_KERNELS_IMAGE_H

#include <stddef.h>

/* NULL: there is none. */
const void *wf_kernels_image(void);
size_t wf_kernels_image_bytes(void);

#endif
