/*
 * kernels_image.h: the fatbin of kernels.cu, if this build has one (CMakeLists.txt chooses the source that defines it).
 */
#ifndef WF_MEM_KERNELS_IMAGE_H
#define WF_MEM_KERNELS_IMAGE_H

#include <stddef.h>

/* NULL: this build has no kernels. */
const void *wf_kernels_image(void);
size_t wf_kernels_image_bytes(void);

#endif
