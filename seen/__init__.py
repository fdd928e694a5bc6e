"""What users have played: kept for months in Bloom filters, asked by other services and Discover."""
