/* Stands in for NVIDIA's libcudart.so.13, where a program needs it to start and no GPU to run on. */
#include <stddef.h>

enum { NO_DEVICE = 100 };

void **__cudaRegisterFatBinary(void *binary) {
    static void *handle;
    handle = binary;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
void __cudaRegisterFunction(void **handle, const char *function, char *name, const char *device_name, int threads,
                            void *tid, void *bid, void *block, void *grid, int *warp) {
    (void)handle, (void)function, (void)name, (void)device_name, (void)threads;
    (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
}
int __cudaPushCallConfiguration(void) { return NO_DEVICE; }
int __cudaPopCallConfiguration(void) { return NO_DEVICE; }
int __cudaGetKernel(void) { return NO_DEVICE; }
int __cudaLaunchKernel(void) { return NO_DEVICE; }
int cudaMalloc(void) { return NO_DEVICE; }
int cudaMemcpy(void) { return NO_DEVICE; }
int cudaGetLastError(void) { return NO_DEVICE; }
const char *cudaGetErrorString(int error) { return error == NO_DEVICE ? "no CUDA-capable device is detected" : "unknown"; }
