"""Differentiates a compiled function with JAX on the GPU if there is one, and prints OK."""

import jax
import jax.numpy as jnp

print(f"jax {jax.__version__}, devices {jax.devices()}")
gradient = jax.jit(jax.grad(lambda x: jnp.sum(x**3)))
x = jnp.linspace(-2.0, 2.0, 1024)
assert jnp.allclose(gradient(x), 3 * x**2, atol=1e-5)
print("OK")
