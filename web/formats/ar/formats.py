"""Arabic dates and numbers, with the digits 0 to 9 that big sites show in every Arabic country."""

DATE_FORMAT = "j F Y"
DATETIME_FORMAT = "j F Y، g:i A"
SHORT_DATE_FORMAT = "j F Y"
SHORT_DATETIME_FORMAT = "j F Y، g:i A"
DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
