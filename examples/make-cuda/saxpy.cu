// Computes y = 2x + y with cuBLAS, compares it with the CPU, and prints OK.

#include <cstdio>
#include <vector>

#include <cublas_v2.h>
#include <cuda_runtime.h>

int main() {
    constexpr int count = 1 << 16;
    const float factor = 2;
    std::vector<float> x(count), y(count), result(count);
    for (int index = 0; index < count; ++index) {
        x[index] = static_cast<float>(index % 100);
        y[index] = static_cast<float>(index % 7);
    }
    float *device_x = nullptr, *device_y = nullptr;
    cublasHandle_t handle = nullptr;
    const size_t bytes = count * sizeof(float);
    if (cudaMalloc(&device_x, bytes) != cudaSuccess || cudaMalloc(&device_y, bytes) != cudaSuccess ||
        cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
        std::fprintf(stderr, "cannot use the GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice);
    cublasSaxpy(handle, count, &factor, device_x, 1, device_y, 1);
    cudaMemcpy(result.data(), device_y, bytes, cudaMemcpyDeviceToHost);
    for (int index = 0; index < count; ++index) {
        if (result[index] != factor * x[index] + y[index]) {
            std::fprintf(stderr, "element %d is %f\n", index, result[index]);
            return 1;
        }
    }
    std::printf("OK: %d elements\n", count);
}
