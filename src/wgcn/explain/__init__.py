"""Why a text gets its scores: as data, as text and as a page."""
