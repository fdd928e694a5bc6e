"""How numbers and dates are written in Chinese, where Django writes them otherwise than Chinese sites do."""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
MONTH_DAY_FORMAT = "n月j日"
