# A web server: ten pages are read, and a line is written to a log that all threads share.

set $dir=/tmp
set $nfiles=1000
set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=100

define fileset name=pages,path=$dir,size=$size,entries=$nfiles,dirwidth=20,prealloc=100,readonly
define fileset name=logs,path=$dir,size=$size,entries=1,dirwidth=20,prealloc

define process name=web
{
  thread name=worker,instances=$nthreads
  {
    flowop openfile name=open0,filesetname=pages,fd=1
    flowop readwholefile name=read0,iosize=1m,fd=1
    flowop closefile name=close0,fd=1
    flowop openfile name=open1,filesetname=pages,fd=1
    flowop readwholefile name=read1,iosize=1m,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=pages,fd=1
    flowop readwholefile name=read2,iosize=1m,fd=1
    flowop closefile name=close2,fd=1
    flowop openfile name=open3,filesetname=pages,fd=1
    flowop readwholefile name=read3,iosize=1m,fd=1
    flowop closefile name=close3,fd=1
    flowop openfile name=open4,filesetname=pages,fd=1
    flowop readwholefile name=read4,iosize=1m,fd=1
    flowop closefile name=close4,fd=1
    flowop openfile name=open5,filesetname=pages,fd=1
    flowop readwholefile name=read5,iosize=1m,fd=1
    flowop closefile name=close5,fd=1
    flowop openfile name=open6,filesetname=pages,fd=1
    flowop readwholefile name=read6,iosize=1m,fd=1
    flowop closefile name=close6,fd=1
    flowop openfile name=open7,filesetname=pages,fd=1
    flowop readwholefile name=read7,iosize=1m,fd=1
    flowop closefile name=close7,fd=1
    flowop openfile name=open8,filesetname=pages,fd=1
    flowop readwholefile name=read8,iosize=1m,fd=1
    flowop closefile name=close8,fd=1
    flowop openfile name=open9,filesetname=pages,fd=1
    flowop readwholefile name=read9,iosize=1m,fd=1
    flowop closefile name=close9,fd=1
    flowop appendfilerand name=log,filesetname=logs,iosize=16k,fd=2
  }
}

run 60
