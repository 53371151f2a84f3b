"""Multiplies two matrices on the GPU if there is one, compares the result with NumPy's, and prints OK."""

import numpy
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
print(f"torch {torch.__version__}, device {device}")
generator = torch.Generator().manual_seed(1)
a = torch.rand(256, 256, generator=generator, dtype=torch.float64)
b = torch.rand(256, 256, generator=generator, dtype=torch.float64)
product = (a.to(device) @ b.to(device)).cpu().numpy()
numpy.testing.assert_allclose(product, a.numpy() @ b.numpy(), rtol=1e-12)
print("OK")
