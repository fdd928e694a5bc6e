"""Files of pictures and videos: taken, checked, written anew, kept, served and removed. Owners are known by id only."""
