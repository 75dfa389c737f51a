# The library that draws the charts of `weft report`, Apache ECharts: one file, which becomes a part of the program. It is
# in no repository of ours: a source archive carries it (target source_archive), and npm fetches it where it is not there,
# exactly as bench/report/page/package-lock.json says. A build without it has a `weft report` that writes tables alone.
#
#   WEFT_ECHARTS        the file, or empty
#   WEFT_ECHARTS_TERMS  the folder of it and of the terms under which it may be passed on
option(WEFT_CHARTS "charts in what `weft report` writes: needs npm, once for each build folder" ${PROJECT_IS_TOP_LEVEL})

# Sets `out` to what went wrong, or to nothing: fills `folder` with what npm installs.
function(weft_fetch_charts folder out)
  set(page ${PROJECT_SOURCE_DIR}/bench/report/page)
  set(work ${folder}/npm)
  file(REMOVE_RECURSE ${folder})
  file(MAKE_DIRECTORY ${work})
  file(COPY ${page}/package.json ${page}/package-lock.json DESTINATION ${work})
  message(STATUS "Fetching the library that draws charts with npm")
  execute_process(
    COMMAND ${WEFT_NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1
      --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 --fetch-timeout=30000
    WORKING_DIRECTORY ${work} TIMEOUT 120 RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  set(modules ${work}/node_modules)
  set(reason "")
  if(NOT result EQUAL 0)
    string(REGEX MATCH "npm [^\n]*(code|ERR!|error)[^\n]*" line "${said}")
    set(reason "npm failed (${result}) ${line}")
  elseif(NOT EXISTS ${modules}/echarts/dist/echarts.min.js)
    set(reason "npm installed no echarts/dist/echarts.min.js")
  else()
    file(COPY ${modules}/echarts/dist/echarts.min.js ${modules}/echarts/LICENSE ${modules}/echarts/NOTICE
      ${modules}/echarts/licenses DESTINATION ${folder})
    # These two are inside of that file.
    configure_file(${modules}/zrender/LICENSE ${folder}/licenses/LICENSE-zrender COPYONLY)
    configure_file(${modules}/tslib/LICENSE.txt ${folder}/licenses/LICENSE-tslib COPYONLY)
  endif()
  file(REMOVE_RECURSE ${work})
  set(${out} "${reason}" PARENT_SCOPE)
endfunction()

# Sets WEFT_ECHARTS and WEFT_ECHARTS_TERMS of the caller.
function(weft_find_charts)
  set(page ${PROJECT_SOURCE_DIR}/bench/report/page)
  set(folder ${PROJECT_BINARY_DIR}/echarts)
  set(reason "")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page}/package-lock.json)
  file(SHA256 ${page}/package-lock.json lock)
  set(fetched "")
  if(EXISTS ${folder}/lock)
    file(READ ${folder}/lock fetched)
  endif()
  if(EXISTS ${page}/echarts/echarts.min.js)
    set(folder ${page}/echarts)
  elseif(NOT fetched STREQUAL lock)
    find_program(WEFT_NPM npm)
    if(NOT WEFT_NPM)
      set(reason "npm is not here. Install it (package npm) and configure again")
    elseif(WEFT_CHARTS_FAILED STREQUAL lock)
      set(reason "npm could not fetch their library before. cmake -U WEFT_CHARTS_FAILED ${PROJECT_BINARY_DIR} tries again")
    else()
      weft_fetch_charts(${folder} reason)
      if(reason)
        set(WEFT_CHARTS_FAILED ${lock} CACHE INTERNAL "the lock file whose packages npm could not fetch")
        string(APPEND reason ". With a network, cmake -U WEFT_CHARTS_FAILED ${PROJECT_BINARY_DIR} tries again")
      else()
        file(WRITE ${folder}/lock ${lock})
      endif()
    endif()
  endif()
  if(NOT reason)
    # It stands in a <script>.
    file(STRINGS ${folder}/echarts.min.js ends REGEX "</[sS][cC][rR][iI][pP][tT]|<!--" LIMIT_COUNT 1)
    if(ends)
      set(reason "echarts.min.js cannot stand in a page: it has the end of a script in it")
    endif()
  endif()
  if(reason)
    message(NOTICE "weft report will write tables without charts: ${reason}; -DWEFT_CHARTS=OFF does without.")
    set(folder "")
  endif()
  set(WEFT_ECHARTS_TERMS "${folder}" PARENT_SCOPE)
  set(WEFT_ECHARTS "" PARENT_SCOPE)
  if(folder)
    set(WEFT_ECHARTS ${folder}/echarts.min.js PARENT_SCOPE)
  endif()
endfunction()

set(WEFT_ECHARTS "")
set(WEFT_ECHARTS_TERMS "")
if(WEFT_CHARTS)
  weft_find_charts()
endif()

# The files of the page are read by the assembler, of which the build knows nothing by itself.
#   weft_page_parts(SOURCE)   the source that has them, in this folder
function(weft_page_parts source)
  set(page ${PROJECT_SOURCE_DIR}/bench/report/page)
  file(GLOB files CONFIGURE_DEPENDS ${page}/*.css ${page}/*.js)
  set(definitions "WEFT_PAGE=\"${page}\"")
  if(WEFT_ECHARTS)
    list(APPEND definitions "WEFT_ECHARTS=\"${WEFT_ECHARTS}\"")
    list(APPEND files ${WEFT_ECHARTS})
  endif()
  set_property(SOURCE ${source} PROPERTY COMPILE_DEFINITIONS "${definitions}")
  set_property(SOURCE ${source} PROPERTY OBJECT_DEPENDS "${files}")
endfunction()
