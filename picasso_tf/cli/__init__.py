"""The command line: `picasso-tf run | explain | replay`."""
