"""Faster ways to the same numbers; with GPTVIZ_KERNELS=off everything works without them.

- `kernels`: linear layers by oneDNN where that was measured to be faster here, and when the others are used.
- `attention`: causal attention without the half that the mask hides.
- `one_token`: one new token through all blocks without a call of a module: half of what Python costs a step.
"""
