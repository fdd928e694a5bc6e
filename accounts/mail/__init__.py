"""Letters by e-mail: written in the transaction of the event, sent by workers."""
