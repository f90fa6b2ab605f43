"""The default model: the linearised word grounded graph convolutional network, and how it is trained."""
