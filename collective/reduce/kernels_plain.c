/* The loops for any processor of this kind. */
#define WF_KERNELS_BODY wf_kernels_plain
#include "collective/reduce/kernels.h"
