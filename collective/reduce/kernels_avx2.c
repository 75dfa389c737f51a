/* The loops for processors with AVX2; compiled with it where the compiler knows it (collective/CMakeLists.txt). */
#define WF_KERNELS_BODY wf_kernels_avx2
#include "collective/reduce/kernels.h"
