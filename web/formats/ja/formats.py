"""Japanese dates, as scripts write them."""

DATETIME_FORMAT = "Y年n月j日 G:i"
SHORT_DATE_FORMAT = "Y年n月j日"
