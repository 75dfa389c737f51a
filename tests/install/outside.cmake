# A project that knows of Weft only what find_package() tells it.
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES C)
find_package(weft 0.1 REQUIRED COMPONENTS static)
foreach(kind weft weft_static)
  add_executable(outside_${kind} example.c)
  target_link_libraries(outside_${kind} PRIVATE weft::${kind})
endforeach()
