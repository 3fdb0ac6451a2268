"""The platform around a recommender: its totals by day, and whether the recommender only shifts them."""
