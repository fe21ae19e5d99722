"""The pages for browsers: templates, one stylesheet, and what turns stored nouns into what they show. No script anywhere."""
