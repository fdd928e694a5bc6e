"""What discover does at the news from below."""
