"""What limits a running engine: samples of cards, host and engine in, one bottleneck with its evidence out."""
