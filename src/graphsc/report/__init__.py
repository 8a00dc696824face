"""What a person looks at: drawings of graphs and maps of embeddings, from arrays and collections."""
