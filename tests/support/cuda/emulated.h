/*
 * emulated.h: a CUDA driver without a GPU. build/emulated/libcuda.so.1 and libnvidia-ml.so.1 are what Weft loads in
 * their stead with LD_LIBRARY_PATH=build/emulated; they are never installed, and whatever was done with them is called
 * "cuda (emulated)". What they promise:
 *
 *     the processor never touches device memory and lives;
 *     a copy moves its bytes at a random moment after it was asked for and before it is reported done;
 *     a stream keeps its order, and nothing else has one.
 *
 * So who reads a destination too early, reuses a source too early or lets go of memory too early is found out. Where
 * the documentation of the driver (the comments of cuda.h) leaves a choice, the stricter one was taken.
 *
 * --- what is emulated ---
 *
 * Device addresses are reserved without access: a read or write by the processor ends the process with a line on stderr
 * that names the GPU and the address, after which whoever handled SIGSEGV before gets its turn. The kernel answers
 * EFAULT. Allocations lie apart, and an address is not used again until the device's range went round once.
 *
 * A copy between a GPU and memory that is not registered waits: from the host until its source has been taken (up to
 * 64 KiB it is kept aside, more waits for the whole copy), to the host until it is done. One half of all copies write
 * 0xA5 to their destination first (beyond 64 KiB, to its beginning, its end and somewhere between). Host memory that
 * goes away while a copy refers to it ends the process with a line that names the GPU.
 *
 * cuMemFree waits for all work of its device and cuMemHostUnregister for what refers to the range, as they may in a
 * real driver. The last release of a primary context drops the work that is queued, and frees what was made in it.
 *
 * An error of a launch is the context's from then on: each call and each event gives it (CUDA_ERROR_LAUNCH_FAILED,
 * 719). A lost GPU answers CUDA_ERROR_UNKNOWN (999): cuda.h has no code of its own for a GPU that fell off the bus, and
 * 999 is what programs are seen to get. Retaining it anew gives CUDA_ERROR_DEVICE_UNAVAILABLE (46), NVML says
 * GPU_IS_LOST (15). An error of one copy alone is CUDA_ERROR_ECC_UNCORRECTABLE (214), one that cuda.h does not call
 * lasting: the next event that is recorded in its stream, or the next wait for it, gives it once.
 *
 * A stream waits for a word of registered host memory only where that was mapped for devices, too
 * (CU_MEMHOSTREGISTER_DEVICEMAP).
 *
 * Streams can be captured into graphs that nobody ever sees (capture.c): for what a capture forbids to others.
 *
 * There is no kernel: cuModuleLoadData gives CUDA_ERROR_NO_BINARY_FOR_GPU (209).
 *
 * cuMemGetHandleForAddressRange gives a dma-buf where WEFT_EMULATED_UDMABUF is set and this process may use
 * /dev/udmabuf: of whole pages that an allocation at both ends reaches into, at most udmabuf.size_limit_mb of the
 * kernel's command line. As of a GPU, its memory stays until it is closed: what is allocated at the same address
 * afterwards is other memory. Elsewhere the attribute DMA_BUF_SUPPORTED is 0, and the call gives
 * CUDA_ERROR_NOT_SUPPORTED (801).
 *
 * The calls of virtual memory management and of memory pools are not here; memory such
 * as they give is, by weft_emulated_map().
 *
 * --- the environment, read once by cuInit (nvmlInit) ---
 *
 *     WEFT_EMULATED_GPUS        how many; as many as there are addresses, unless given
 *     WEFT_EMULATED_PCI         their addresses, "0000:18:00.0,0000:3a:00.0"; those of dgx-8nic.xml unless given. What
 *                               the list lacks is made up (domain f000)
 *     WEFT_EMULATED_TOPOLOGY    an hwloc XML file: the addresses of its NVIDIA GPUs, instead of a list
 *     WEFT_EMULATED_MEMORY      bytes of each GPU [4G]; pages are taken as they are written
 *     WEFT_EMULATED_GUARD       bytes between two allocations, at least [64K]; 0: they may touch
 *     WEFT_EMULATED_LATENCY_US  from when an operation could start until it does, on average [5]; the draw goes from 0
 *                               to its double, now and then eight times that is added, and most records have none
 *     WEFT_EMULATED_RATE        bytes per second of each GPU's copies out, in, and to peers [0: no limit]
 *     WEFT_EMULATED_CLOCK_PPM   millionths by which the GPUs' clocks are faster than the processor's [0], up to 100000
 *     WEFT_EMULATED_SEED        of all draws [1]
 *     WEFT_EMULATED_FAULT       as weft_emulated_fault() takes it
 *     WEFT_EMULATED_COHERENT    1: GPUs that use the processor's page tables. Pageable memory is copied from and to as
 *                               registered memory is: when it is its turn, and nobody waits
 *     WEFT_EMULATED_UDMABUF     1: dma-bufs of device memory, by /dev/udmabuf; 2: and that memory is huge pages, of
 *                               which the machine has enough free, so it lies in pieces of 2 MiB as a GPU's does
 *     WEFT_EMULATED_NVML_STATE  a folder by whose files a test changes what NVML says, at any time (emulated_nvml.h)
 *     WEFT_EMULATED_OLD         1: a driver of CUDA 12.0 that lacks every optional symbol
 *
 * Sizes take the suffixes K, M, G and T (powers of 1024). What cannot be read ends cuInit with
 * CUDA_ERROR_INVALID_VALUE and a line on stderr.
 */
#ifndef WEFT_TESTS_CUDA_EMULATED_H
#define WEFT_TESTS_CUDA_EMULATED_H

#include <stdint.h>

#define WEFT_EMULATED_EXPORT __attribute__((visibility("default")))

/* 1, in both libraries: who finds it must not call the memory "cuda". */
WEFT_EMULATED_EXPORT extern const int weft_emulated_driver;

/* How often the primary context of a device is retained right now. -1: no such device. */
WEFT_EMULATED_EXPORT int weft_emulated_contexts(int device);

/*
 * How often something happened since cuInit, any thread:
 *     "copies", "copies out", "copies in", "copies peer"   carried out; a batch counts each of its pieces
 *     "bytes", "bytes out", "bytes in", "bytes peer"       moved
 *     "synchronise"    calls that waited for the device, or that may in a real driver
 *     "operations"     that ended, of all kinds: copies (a batch is one), records, waits in streams
 *     "failed"         copies that ended in an error, or were dropped because of one
 *     "pending"        operations of all streams that have not ended yet (a level)
 *     "allocated"      bytes of device memory in use (a level); "registered": of host memory
 *     "streams", "events"    that exist (levels)
 *     "cuMemAlloc" and the like: calls of a function, whichever its suffix
 * UINT64_MAX: there is no such thing.
 */
WEFT_EMULATED_EXPORT uint64_t weft_emulated_count(const char *what);

/*
 * Adds faults: items separated by ';', each a word and what it is about, separated by ',':
 *
 *     alloc:device=2,at=3          the third allocation of device memory from now on: CUDA_ERROR_OUT_OF_MEMORY
 *     register:at=1                the next cuMemHostRegister: CUDA_ERROR_OUT_OF_MEMORY
 *     launch:device=2,way=out,at=5 the fifth copy: half written, then CUDA_ERROR_LAUNCH_FAILED for the context
 *     lost:device=2,way=in,at=1    the GPU falls off the bus in the midst of the copy; nothing of it is written again
 *     lost:device=2                without at: now, before the call returns
 *     copy:device=2,way=in,at=1    this copy alone fails, half written
 *     refuse:device=2,at=1         the call for this copy gives CUDA_ERROR_OUT_OF_MEMORY, and nothing is queued
 *     clear                        forget the faults that have not happened
 *     heal                         and those that have: for the next test of a process
 *
 * device: any, unless given; it is the one whose memory is copied, between two the source's. way: out, in, peer, or
 * any. at: counts what matches from now on, in the order of the calls [1]. code=N: another code than the one named
 * here. 0, or -EINVAL with a line on stderr and nothing added. After cuInit.
 */
WEFT_EMULATED_EXPORT int weft_emulated_fault(const char *spec);

/*
 * Memory as cuMemAddressReserve, cuMemCreate and cuMemMap give it, of `count` mappings side by side in one reservation:
 * cuMemGetAddressRange tells of the mapping, the attributes of a pointer of the reservation and of no context, and
 * copies run across. Counts neither as an allocation nor in "allocated", and outlives contexts. 0, -EINVAL, or -ENOMEM.
 * Unmapping takes the address of the first, and waits for no copy: there must be none.
 */
WEFT_EMULATED_EXPORT int weft_emulated_map(int device, const uint64_t *bytes, int count, uint64_t *address);
WEFT_EMULATED_EXPORT int weft_emulated_unmap(uint64_t address);

/* The device stands still until it is let go on: its streams take what is asked for, and nothing of it is done. When
 * this returns, nothing of its streams moves. Calls that wait for it wait. */
WEFT_EMULATED_EXPORT void weft_emulated_pause(int device, int paused);

/* Whether the device was lost. For NVML. */
WEFT_EMULATED_EXPORT int weft_emulated_lost(int device);

#endif
