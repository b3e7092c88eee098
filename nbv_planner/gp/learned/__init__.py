"""A prior that learns: Bayesian model averaging over kernels and symmetries, in the Fourier series of the radius."""
