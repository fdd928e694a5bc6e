"""Commands of the demo community and of data sets."""
