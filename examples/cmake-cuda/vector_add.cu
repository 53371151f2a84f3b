// Adds two vectors on the GPU, compares the sums with those of the CPU, and prints OK.

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

__global__ void add(const float *a, const float *b, float *sum, int count) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) sum[index] = a[index] + b[index];
}

static bool failed(cudaError_t error, const char *step) {
    if (error == cudaSuccess) return false;
    std::fprintf(stderr, "%s: CUDA error %d: %s\n", step, error, cudaGetErrorString(error));
    return true;
}

int main() {
    constexpr int count = 1 << 20;
    std::vector<float> a(count), b(count), sum(count);
    for (int index = 0; index < count; ++index) {
        a[index] = static_cast<float>(index % 1000);
        b[index] = static_cast<float>(2 * (index % 500));
    }

    float *device = nullptr;
    const size_t bytes = count * sizeof(float);
    if (failed(cudaMalloc(&device, 3 * bytes), "cudaMalloc")) return 1;
    float *device_a = device, *device_b = device + count, *device_sum = device + 2 * count;
    if (failed(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice), "copy a")) return 1;
    if (failed(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice), "copy b")) return 1;
    add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_sum, count);
    if (failed(cudaGetLastError(), "launch")) return 1;
    if (failed(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost), "copy sum")) return 1;
    cudaFree(device);

    for (int index = 0; index < count; ++index) {
        if (sum[index] != a[index] + b[index]) {
            std::fprintf(stderr, "sum %d is %f, not %f\n", index, sum[index], a[index] + b[index]);
            return 1;
        }
    }
    std::printf("OK: %d sums\n", count);
}
