"""At home with real TVM: their libraries here, ours there. ``make test-tvm`` runs these."""
