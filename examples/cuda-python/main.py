"""Runs a kernel written in CUDA C++ with CuPy, compares the result with NumPy's, and prints OK."""

import cupy
import numpy

square = cupy.RawKernel(
    r"""
    extern "C" __global__ void square(const float *x, float *y, int count) {
        int index = blockIdx.x * blockDim.x + threadIdx.x;
        if (index < count) y[index] = x[index] * x[index];
    }
    """,
    "square",
)
x = cupy.arange(1000, dtype=cupy.float32)
y = cupy.empty_like(x)
square(((x.size + 255) // 256,), (256,), (x, y, numpy.int32(x.size)))
numpy.testing.assert_array_equal(y.get(), numpy.arange(1000, dtype=numpy.float32) ** 2)
print("OK")
