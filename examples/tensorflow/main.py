"""Fits a line with TensorFlow on the GPU if there is one, and prints OK."""

import tensorflow as tf

print(f"tensorflow {tf.__version__}, GPUs {len(tf.config.list_physical_devices('GPU'))}")
x = tf.linspace(-1.0, 1.0, 200)
y = 3.0 * x + 0.5
slope, offset = tf.Variable(0.0), tf.Variable(0.0)
for _ in range(200):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(slope * x + offset - y))
    for variable, gradient in zip((slope, offset), tape.gradient(loss, (slope, offset)), strict=True):
        variable.assign_sub(0.3 * gradient)
assert abs(slope.numpy() - 3.0) < 1e-2 and abs(offset.numpy() - 0.5) < 1e-2, (slope, offset)
print("OK")
