a="${x}"
long_name   = [ 1 ]
