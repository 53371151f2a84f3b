// A program with a kernel. `--version` needs no GPU; without it, the kernel runs.
#include <cstring>
#include <iostream>

__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }

static int failed(const char *what, cudaError_t error) {
    std::cerr << what << ": " << cudaGetErrorString(error) << "\n";
    return 1;
}

int main(int count, char **arguments) {
    if (count > 1 && std::strcmp(arguments[1], "--version") == 0) {
        std::cout << "program 1.0\n";
        return 0;
    }
    float host[32], *device = nullptr;
    for (int i = 0; i < 32; i++) host[i] = static_cast<float>(i);
    if (cudaError_t error = cudaMalloc(&device, sizeof host)) return failed("cudaMalloc", error);
    if (cudaError_t error = cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice)) return failed("cudaMemcpy", error);
    scale<<<1, 32>>>(device, 2.0f);
    if (cudaError_t error = cudaGetLastError()) return failed("launch", error);
    if (cudaError_t error = cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost)) return failed("cudaMemcpy", error);
    for (int i = 0; i < 32; i++) {
        if (host[i] != 2.0f * static_cast<float>(i)) {
            std::cerr << "wrong result at " << i << "\n";
            return 1;
        }
    }
    std::cout << "computed 32 numbers\n";
    return 0;
}
