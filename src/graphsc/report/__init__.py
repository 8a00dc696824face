"""What a person looks at: graphs, maps, curves, ranks and the HTML report, from arrays and collections."""
