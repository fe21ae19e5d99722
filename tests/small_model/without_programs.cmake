# The package asks for a library of llama.cpp's own programs, which nothing of it uses: half of what there is to compile. What is set here
# comes before what it puts into the cache.
set(LLAMA_BUILD_COMMON OFF)
