# A room is a folder with a promise: all its sources are one target, other rooms see only the headers that it names, and
# it includes only what it says. C does not check that, so the configuration does.
#
#   weft_room(NAME [EXCEPT source...] [USES room...] [PUBLIC header...] [INSIDE room...])
#
# NAME     the folder, as in #include lines: core/rail is transport/core/rail. The target is weft_core_rail, an OBJECT
#          library; of a folder with headers alone it is an INTERFACE library.
# EXCEPT   sources of the folder that are not built here
# USES     rooms whose public headers it may include. They stand before it in the order of the build, so arrows go down.
# PUBLIC   headers that other rooms may include
# INSIDE   rooms of which it may include every header: for tests
#
# transport/weft.h is a room of its own, "weft".

define_property(GLOBAL PROPERTY WEFT_ROOMS BRIEF_DOCS "names of the rooms so far")

# Sets `out` to the folder of a room.
function(weft_room_folder name out)
  set(folder ${PROJECT_SOURCE_DIR}/transport/${name})
  if(name STREQUAL "weft")
    set(folder ${PROJECT_SOURCE_DIR}/transport)
  elseif(NOT IS_DIRECTORY ${folder})
    set(folder ${PROJECT_SOURCE_DIR}/${name})
  endif()
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

# Stops the configuration: `file` has no right to the header `name`.
function(weft_room_refuse file name reason)
  file(READ ${file} text)
  string(FIND "${text}" "\"${name}\"" at)
  string(SUBSTRING "${text}" 0 ${at} text)
  string(REGEX MATCHALL "\n" lines "${text}")
  list(LENGTH lines line)
  math(EXPR line "${line} + 1")
  file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR} ${file})
  # A line that begins with a space is not wrapped.
  message(FATAL_ERROR " ${file}:${line}: #include \"${name}\": ${reason} (see cmake/rooms.cmake)")
endfunction()

# May a file of the room include `name`? `uses`, `inside`: as of the room.
function(weft_room_check_include room folder uses inside file name)
  get_filename_component(other "${name}" DIRECTORY)
  get_filename_component(header "${name}" NAME)
  if(name STREQUAL "weft.h")
    set(other weft)
  elseif(other STREQUAL "")
    set(other ${room})
  endif()
  if(other STREQUAL room)
    if(NOT EXISTS ${folder}/${header})
      weft_room_refuse(${file} ${name} "${room} has no such header")
    endif()
    return()
  endif()
  if(other IN_LIST inside)
    return()
  endif()
  get_property(rooms GLOBAL PROPERTY WEFT_ROOMS)
  if(NOT other IN_LIST uses)
    weft_room_refuse(${file} ${name} "${room} does not use the room ${other}")
  endif()
  get_property(public GLOBAL PROPERTY WEFT_ROOM_PUBLIC_${other})
  if(NOT header IN_LIST public)
    weft_room_refuse(${file} ${name} "not a public header of ${other}")
  endif()
endfunction()

# The room's part of the rule: registers it, and reads the #include lines of its folder. For a room whose target is made
# by hand; all others call weft_room(). Arguments as there, but for EXCEPT.
function(weft_room_check name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES;PUBLIC;INSIDE")
  weft_room_folder(${name} folder)
  get_property(rooms GLOBAL PROPERTY WEFT_ROOMS)
  foreach(other ${room_USES} ${room_INSIDE})
    if(NOT other IN_LIST rooms)
      message(FATAL_ERROR " the room ${name} uses ${other}, which is not a room below it (see cmake/rooms.cmake)")
    endif()
  endforeach()
  foreach(header ${room_PUBLIC})
    if(NOT EXISTS ${folder}/${header})
      message(FATAL_ERROR " the room ${name} has no header ${header}")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY WEFT_ROOMS ${name})
  set_property(GLOBAL PROPERTY WEFT_ROOM_PUBLIC_${name} ${room_PUBLIC})

  # A changed source may have a new #include: the next build configures again.
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.[ch])
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  foreach(file ${files})
    file(STRINGS ${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
    foreach(include ${includes})
      string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" include "${include}")
      weft_room_check_include(${name} ${folder} "${room_USES}" "${room_INSIDE}" ${file} ${include})
    endforeach()
  endforeach()
endfunction()

function(weft_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "EXCEPT;USES;PUBLIC;INSIDE")
  weft_room_check(${name} USES ${room_USES} PUBLIC ${room_PUBLIC} INSIDE ${room_INSIDE})
  weft_room_folder(${name} folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  list(TRANSFORM room_EXCEPT PREPEND ${folder}/)
  list(REMOVE_ITEM sources "" ${room_EXCEPT})
  string(REPLACE / _ target weft_${name})
  set(kind PUBLIC)
  if(sources)
    add_library(${target} OBJECT ${sources})
    set_property(TARGET ${target} PROPERTY POSITION_INDEPENDENT_CODE ON)
  else()
    set(kind INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_link_libraries(${target} ${kind} weft_flags)
  foreach(other ${room_USES} ${room_INSIDE})
    string(REPLACE / _ other weft_${other})
    if(NOT other STREQUAL "weft_weft")
      target_link_libraries(${target} ${kind} ${other})
    endif()
  endforeach()
endfunction()

# Stops the configuration where a folder below one of the arguments holds sources and is no room.
function(weft_rooms_complete)
  get_property(rooms GLOBAL PROPERTY WEFT_ROOMS)
  set(known "")
  foreach(room ${rooms})
    weft_room_folder(${room} folder)
    list(APPEND known ${folder})
  endforeach()
  foreach(top ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${top}/*.[ch])
    foreach(source ${sources})
      get_filename_component(folder ${source} DIRECTORY)
      if(NOT folder IN_LIST known)
        message(FATAL_ERROR " ${folder} holds sources, but is no room (see cmake/rooms.cmake)")
      endif()
    endforeach()
  endforeach()
endfunction()
