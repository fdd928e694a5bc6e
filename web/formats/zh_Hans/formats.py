"""Chinese numbers and dates, where Django's differ from Chinese sites."""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
MONTH_DAY_FORMAT = "n月j日"
