"""Methods through training and evaluation, results that are kept, and tables made of them."""
