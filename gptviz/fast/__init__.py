"""The same numbers sooner, and nothing else: with GPTVIZ_KERNELS=off all is the same without this room.

- `kernels`: linear layers by oneDNN where that was measured to be faster here, and when the others are used.
- `attention`: causal attention without the half that the mask hides.
- `one_token`: one new token through all blocks without a call of a module: half of what Python costs a step.
"""
