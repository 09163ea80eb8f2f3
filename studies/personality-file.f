# A file server: whole files are written, appended to, read and removed.

set $dir=/tmp
set $nfiles=10000
set $size=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $nthreads=50

define fileset name=homes,path=$dir,size=$size,entries=$nfiles,dirwidth=20,prealloc=80

define process name=files
{
  thread name=worker,instances=$nthreads
  {
    flowop createfile name=create,filesetname=homes,fd=1
    flowop writewholefile name=write,iosize=1m,fd=1
    flowop closefile name=written,fd=1
    flowop openfile name=open,filesetname=homes,fd=1
    flowop appendfilerand name=append,iosize=16k,fd=1
    flowop closefile name=appended,fd=1
    flowop openfile name=look,filesetname=homes,fd=1
    flowop readwholefile name=read,iosize=1m,fd=1
    flowop closefile name=looked,fd=1
    flowop deletefile name=delete,filesetname=homes
    flowop statfile name=stat,filesetname=homes
  }
}

run 60
