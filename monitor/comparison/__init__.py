"""Two recommenders, models, arms or spans side by side: which is better, and how sure that is."""
