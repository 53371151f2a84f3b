#include "counting.h"

#include <cuda_runtime.h>

__global__ void count(const unsigned char *bytes, std::size_t size, unsigned *counts) {
    __shared__ unsigned block_counts[256];
    block_counts[threadIdx.x] = 0;
    __syncthreads();
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t index = blockIdx.x * blockDim.x + threadIdx.x; index < size; index += step) {
        atomicAdd(&block_counts[bytes[index]], 1u);
    }
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], block_counts[threadIdx.x]);
}

extern "C" int count_bytes(const unsigned char *bytes, std::size_t size, unsigned *counts) {
    unsigned char *device_bytes = nullptr;
    unsigned *device_counts = nullptr;
    const std::size_t counts_size = 256 * sizeof(unsigned);
    cudaError_t error = cudaMalloc(&device_bytes, size);
    if (error == cudaSuccess) error = cudaMalloc(&device_counts, counts_size);
    if (error == cudaSuccess) error = cudaMemset(device_counts, 0, counts_size);
    if (error == cudaSuccess) error = cudaMemcpy(device_bytes, bytes, size, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) {
        count<<<64, 256>>>(device_bytes, size, device_counts);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) error = cudaMemcpy(counts, device_counts, counts_size, cudaMemcpyDeviceToHost);
    cudaFree(device_bytes);
    cudaFree(device_counts);
    return error;
}
