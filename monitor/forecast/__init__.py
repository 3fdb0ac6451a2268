"""Does an offline metric predict a business metric, and which online metric would a candidate have?"""
