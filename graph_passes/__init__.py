"""The compiler of picasso-tf: a graph in, a graph and a report out. It never imports `picasso_tf`."""
