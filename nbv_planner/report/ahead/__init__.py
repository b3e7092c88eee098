"""What is planned and run by what is known beforehand."""
