"""Reports of sweeps: tables, pictures, comparisons."""
