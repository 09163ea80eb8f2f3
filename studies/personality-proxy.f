# A web proxy: an object is dropped from the cache, one is fetched into it, and five are served from it.

set $dir=/tmp
set $nfiles=10000
set $size=16k
set $nthreads=100

define fileset name=cache,path=$dir,size=$size,entries=$nfiles,dirwidth=1000000,prealloc=80

define process name=proxy
{
  thread name=worker,instances=$nthreads
  {
    flowop deletefile name=drop,filesetname=cache
    flowop createfile name=fetch,filesetname=cache,fd=1
    flowop appendfilerand name=store,iosize=16k,fd=1
    flowop closefile name=stored,fd=1
    flowop openfile name=open0,filesetname=cache,fd=1
    flowop readwholefile name=read0,iosize=1m,fd=1
    flowop closefile name=close0,fd=1
    flowop openfile name=open1,filesetname=cache,fd=1
    flowop readwholefile name=read1,iosize=1m,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=cache,fd=1
    flowop readwholefile name=read2,iosize=1m,fd=1
    flowop closefile name=close2,fd=1
    flowop openfile name=open3,filesetname=cache,fd=1
    flowop readwholefile name=read3,iosize=1m,fd=1
    flowop closefile name=close3,fd=1
    flowop openfile name=open4,filesetname=cache,fd=1
    flowop readwholefile name=read4,iosize=1m,fd=1
    flowop closefile name=close4,fd=1
  }
}

run 60
