"""Tools that look at the whole site: doctor, backup and restore, samples, plots, the model of growth."""
